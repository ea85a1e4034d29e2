"""The state of the store at the end of a night, as immutable Parquet, and how it is read in chunks."""
