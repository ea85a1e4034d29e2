-- Vectors, in the database `nous`.
create extension if not exists vector
