-- A new password for the one who owns everything, already hashed.
alter role {user} password {password}
