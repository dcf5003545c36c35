-- All damage and doubt found on the way, by kind and source.
-- @grain one row per kind of damage and source
-- @column cluster  text; name of the cluster
-- @column code  text; code of the closed list
-- @column severity  text; INFO, DATA_LOSS or ERROR
-- @column source  text; source it was found in, replay when found there
-- @column count  count; how often
-- @column first_at  count; line, revision or record number of the first
-- @column example  text; raw words of the first
-- @column meaning  text; what the code means
-- @column remedy  text; what helps
-- @source diagnostics_rows, sources_rows, diagnostic_codes_rows
SELECT
  d.cluster,
  d.code,
  c.severity,
  coalesce(s.path, 'replay') AS source,
  count(*) AS count,
  min(d.position) AS first_at,
  min_by(d.detail, d.position) AS example,
  c.meaning,
  c.remedy
FROM diagnostics_rows AS d
LEFT JOIN sources_rows AS s
  ON s.cluster = d.cluster AND s.source_id = d.source_id
LEFT JOIN diagnostic_codes_rows AS c
  ON c.code = d.code
GROUP BY d.cluster, d.code, c.severity, coalesce(s.path, 'replay'), c.meaning, c.remedy
ORDER BY d.cluster, d.code, coalesce(s.path, 'replay')
