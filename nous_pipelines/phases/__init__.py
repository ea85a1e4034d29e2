"""Pure functions from tables to tables: what the night decides, with no clock, database or file."""
