-- Cursors of the feed name it. It is this file's own: a store that is made from a
-- damaged one gets another, and so does a backup, while store.id is that of the keys.

INSERT INTO meta(name, value) VALUES ('feed.id', randomblob(8));
