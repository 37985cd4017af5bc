-- A checksum in every row, as `checkpoint`, `segment` and `journal` have it already. It
-- covers all other columns but `thread.recent`, which an index repeats. A file whose
-- pages were written by a plain SQLite, without their checksums, is then judged by its
-- rows. `row_checksum` is a function of Holdfast's connections: reading needs none.

alter table thread add column checksum integer;
alter table move add column checksum integer;
alter table setting add column checksum integer;

update thread set checksum = row_checksum(number, name, family, kind, owner, agent,
    metadata, head, changed, created_at, updated_at, forked_thread, forked_checkpoint,
    deleted_at);
update move set checksum = row_checksum(seq, thread, kind, source, target, moved_at);
update setting set checksum = row_checksum(name, value);
