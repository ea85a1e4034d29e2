"""The ways in and out: REST, MCP, command line, adapters, imports, exports, source code."""
