-- Attempts at an episode that failed for a reason that lies outside of it; the others are its own, and some set it aside.
alter table heart.completions add column outage_count integer not null default 0;
