-- A checksum in every row, as `checkpoint`, `segment` and `journal` have it already. A file
-- whose pages were written by a plain SQLite, without their checksums, is then judged by
-- its rows. `row_checksum` is a function of Holdfast's connections: reading needs none.
--
-- In `thread`, `guard` covers what every save changes (head, changed, updated_at): it is
-- computed by SQLite, as the exclusive or of a sum and a time, because a call into Python
-- takes 1.5 % of a save. `recent` is repeated by an index. `checksum` covers the rest.

alter table thread add column checksum integer;
alter table thread add column guard integer;
alter table move add column checksum integer;
alter table setting add column checksum integer;

update thread set checksum = row_checksum(number, name, family, kind, owner, agent,
        metadata, created_at, forked_thread, forked_checkpoint, deleted_at),
    guard = ((changed * 41 + coalesce(head, -1) * 37) | updated_at)
        - ((changed * 41 + coalesce(head, -1) * 37) & updated_at);
update move set checksum = row_checksum(seq, thread, kind, source, target, moved_at);
update setting set checksum = row_checksum(name, value);
