-- A vector of the space to come stands for one version of its memory; of an earlier one it would stand for another text.

delete from heart.next_embeddings;
alter table heart.next_embeddings add column row_version bigint not null;
