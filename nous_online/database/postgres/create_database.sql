-- The one database Nous keeps its schemas in; cannot run inside a transaction.
create database nous
