-- A fact dated more than a day ahead, by a clock gone wrong or a mistyped year, outlived every later one: earlier versions took
-- it. It counts from when it was written. No version of a fact is new, so none asks for an event.
do $$
declare
    place text;
    written text;
    moment text;
begin
    for place, written, moment in values
        ('heart.facts', 'created_at', 'learned_at'),
        ('heart.facts', 'created_at', 'last_confirmed_at'),
        ('heart.statements', 'recorded_at', 'said_at')
    loop
        execute format('alter table %s no force row level security', place);
        execute format('alter table %s disable trigger user', place);
        execute format('update %1$s set %2$I = %3$I where %2$I > greatest(%3$I, now()) + interval ''1 day''', place, moment, written);
        execute format('alter table %s enable trigger user', place);
    end loop;
end $$;
