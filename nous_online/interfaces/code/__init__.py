"""What source code shows of how a project does things, read from syntax trees; needs the extra `code`."""
