"""What two statements are to each other: read, guarded, compared, judged; pure decisions on words."""
