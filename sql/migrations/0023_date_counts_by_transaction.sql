-- Which agents have news since their words were counted is told by transactions, not by a clock with ten minutes to spare.
alter table heart.corpus_stats add column since_xid xid8;
