"""No look for garbage while what stays to the end is loaded; to be imported before all of that."""

from __future__ import annotations

import gc

gc.disable()
