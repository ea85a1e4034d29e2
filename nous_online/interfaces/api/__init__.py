"""The HTTP interface of the Heart: what `nous api` serves (needs the extra `api`)."""
