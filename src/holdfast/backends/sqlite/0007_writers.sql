-- Format 7: a program that knows this format gives its connections the function
-- `holdfast_format_7`. A trigger that names it cannot be prepared without: so a program
-- of an older version that has had the file open since before is stopped at its next
-- change, before anything of it is made. It would lose what it does not know, such as the
-- files of a checkpoint. A later format that older programs must not write names another
-- function here. No trigger ever calls it, and most writes run none of them.
--
-- Every change of records writes one of these rows: a save and a journal entry move
-- `changed` on their thread, all others leave a row in `move`.

drop trigger thread_begun;
create trigger thread_begun after insert on thread begin
    update thread set recent = new.changed >> 10 where number = new.number;
    select holdfast_format_7() where false;
end;

drop trigger thread_used;
create trigger thread_used after update of changed on thread
when new.changed >> 10 is not old.recent begin
    update thread set recent = new.changed >> 10 where number = new.number;
    select holdfast_format_7() where false;
end;

create trigger move_written before insert on move when false begin
    select holdfast_format_7();
end;

create trigger setting_written before insert on setting when false begin
    select holdfast_format_7();
end;
