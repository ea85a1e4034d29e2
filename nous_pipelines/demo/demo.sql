-- name: drop_database
drop database if exists nous with (force)

-- name: create_database
create database nous
