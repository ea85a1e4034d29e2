"""`python -m docs.generate`: write the pages of docs/reference/ anew."""

from __future__ import annotations

import sys

from docs.generate.pages import write_pages

sys.stdout.write("".join(f"wrote {path}\n" for path in write_pages()) or "docs/reference is current\n")
