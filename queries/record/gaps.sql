-- Every hole in the record.
-- @grain one row per hole
-- @column cluster  text; name of the cluster
-- @column source  text; source that has the hole
-- @column from_revision  revision; first revision that may be missing
-- @column to_revision  revision; last revision that may be missing, null when unknown
-- @column from_at  time; estimated start
-- @column to_at  time; estimated end
-- @column cause  text; why
-- @source gaps_rows, sources_rows, revision_times_rows
SELECT
  g.cluster,
  coalesce(s.path, 'replay') AS source,
  g.from_revision,
  g.to_revision,
  max(f.at) AS from_at,
  min(t.at) AS to_at,
  g.cause
FROM gaps_rows AS g
LEFT JOIN sources_rows AS s
  ON s.cluster = g.cluster AND s.source_id = g.source_id
LEFT JOIN revision_times_rows AS f
  ON f.cluster = g.cluster AND f.revision < g.from_revision
LEFT JOIN revision_times_rows AS t
  ON t.cluster = g.cluster AND t.revision > g.to_revision
GROUP BY g.cluster, coalesce(s.path, 'replay'), g.from_revision, g.to_revision, g.cause
ORDER BY g.cluster, g.from_revision, coalesce(s.path, 'replay'), g.cause
