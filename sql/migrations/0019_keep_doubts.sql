-- Where a judge was not sure that a later fact replaces an earlier one, both stay; recall now knows which is the later.
alter table heart.facts add column perhaps_replaces uuid[] not null default '{}';
