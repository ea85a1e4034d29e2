-- A night condenses episodes that lie side by side, three to a page: with a quarter of the page free one of them could be
-- changed in place, and the others were entered into the vector index again, ten times the work. Two to a page both can.
alter table heart.episodes set (fillfactor = 60);
