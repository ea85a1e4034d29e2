"""`python -m docs.generate`: write what is generated under docs/ anew."""

from __future__ import annotations

import sys

from docs.generate.pages import write_pages

sys.stdout.write("".join(f"wrote {path}\n" for path in write_pages()) or "what is generated under docs/ is current\n")
