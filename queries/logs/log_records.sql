-- Every log record, with its key=value pairs as JSON.
-- @grain one row per log record
-- @column cluster  text; name of the cluster
-- @column component  text; component that wrote it
-- @column node  text; node it ran on
-- @column at  time; header time in UTC, or the time its wrapping tells; null without both
-- @column at_certainty  text; observed (year and zone were told), estimated (inferred) or unknown
-- @column severity  text; I, W, E or F, null for text without a header
-- @column source_file  text; file of the program that logged it
-- @column source_line  count; line of that file
-- @column caller  text; file:line as the record has it
-- @column message  text; message without its key=value pairs
-- @column fields  json; key=value pairs, empty for text records
-- @column pods  json; pods that a kubelet's SyncLoop record names, null for others
-- @column raw  text; the record as it stood
-- @column source  text; path of the log
-- @column record_no  count; 1-based line of the log on which the record starts
-- @source log_lines_rows, sources_rows, log_clocks_rows
SELECT
  l.cluster,
  coalesce(l.component, s.component) AS component,
  coalesce(l.node, s.node) AS node,
  coalesce(
    timezone(
      'UTC',
      make_timestamp(l.stamp_us + 946684800000000)
      + to_years(c.year - year(make_timestamp(l.stamp_us + 946684800000000)))
      - to_seconds(c.utc_offset_seconds)
    ),
    l.wrapped_at
  ) AS at,
  CASE
    WHEN c.year IS NOT NULL THEN c.certainty
    WHEN l.wrapped_at IS NOT NULL THEN 'observed'
    ELSE 'unknown'
  END AS at_certainty,
  l.severity,
  nullif(regexp_extract(l.caller, '([^/]*):[0-9]+$', 1), '') AS source_file,
  CAST(
    nullif(regexp_extract(l.caller, ':([0-9]{1,18})$', 1), '') AS BIGINT
  ) AS source_line,
  l.caller,
  l.message,
  CASE
    WHEN l.structured THEN klog_fields(coalesce(l.body, l.raw)) ELSE '{}'
  END AS fields,
  CASE
    WHEN starts_with(l.message, 'SyncLoop') THEN klog_pods(coalesce(l.body, l.raw))
  END AS pods,
  l.raw,
  s.path AS source,
  l.record_no
FROM log_lines_rows AS l
LEFT JOIN sources_rows AS s
  ON s.cluster = l.cluster AND s.source_id = l.source_id
LEFT JOIN log_clocks_rows AS c
  ON c.cluster = l.cluster
  AND c.source_id = l.source_id
  AND c.year_step = CAST(floor(l.stamp_us / 126230400000000.0) AS BIGINT)
ORDER BY l.cluster, 4, s.path, l.record_no
