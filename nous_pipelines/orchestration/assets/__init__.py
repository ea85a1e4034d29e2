"""The night as assets: each names the thing it makes, and only wires."""
