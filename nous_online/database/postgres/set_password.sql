-- A new password, already hashed.
alter role {user} password {password}
