-- A night weighs what a new fact may change against each other, by the chance that the built-in judge gave each pair.
alter table heart.judgements add column change real not null default 0 check (change between 0 and 1);
