"""What a release is checked by: its wheel, bill of materials, licences, known vulnerabilities and restore drills."""
