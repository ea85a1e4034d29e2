"""Clients of the REST interface in other languages, written from its description: `python -m clients.generate`."""
