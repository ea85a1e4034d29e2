"""The database: the schema as it is, the road to it, and who may do what."""
