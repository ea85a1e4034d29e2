"""One plan of all proposals: kept, checked, carried out, taken back."""
