"""The heart as an MCP server: tools an agent uses, over stdio or streamable HTTP."""
