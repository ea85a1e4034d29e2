"""What a night did, as values, and those as text, page and terminal; figures over nights."""
