"""The programs we start: in front, in the background, and what each is told of ours."""
