-- Every log record, with its key=value pairs as JSON.
-- @grain one row per log record
-- @column cluster  text; name of the cluster
-- @column component  text; component that wrote it
-- @column node  text; node it ran on
-- @column at  time; header time in UTC, null without a header
-- @column at_certainty  text; observed (year and zone were told), estimated (inferred) or unknown
-- @column severity  text; I, W, E or F
-- @column source_file  text; path of the log
-- @column source_line  count; 1-based line on which the record starts
-- @column caller  text; file:line that logged it
-- @column message  text; message without its key=value pairs
-- @column fields  json; key=value pairs, empty for text records
-- @column raw  text; the record as it stood
-- @source log_lines_rows, sources_rows, log_clocks_rows
SELECT
  l.cluster,
  s.component,
  s.node,
  timezone(
    'UTC',
    make_timestamp(l.stamp_us + 946684800000000)
    + to_years(c.year - year(make_timestamp(l.stamp_us + 946684800000000)))
    - to_seconds(c.utc_offset_seconds)
  ) AS at,
  coalesce(c.certainty, 'unknown') AS at_certainty,
  l.severity,
  s.path AS source_file,
  l.record_no AS source_line,
  l.caller,
  l.message,
  CASE WHEN l.structured THEN klog_fields(l.raw) ELSE '{}' END AS fields,
  l.raw
FROM log_lines_rows AS l
LEFT JOIN sources_rows AS s
  ON s.cluster = l.cluster AND s.source_id = l.source_id
LEFT JOIN log_clocks_rows AS c
  ON c.cluster = l.cluster
  AND c.source_id = l.source_id
  AND c.year_step = l.stamp_us // 126230400000000
ORDER BY l.cluster, 4, s.path, l.record_no
