"""Import names that are documented; the code is in `nous_online/interfaces/adapters/`."""
