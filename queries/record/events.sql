-- Every occurrence of a Kubernetes Event that the record tells of.
-- @grain one row per occurrence time or count of an Event
-- @column cluster  text; name of the cluster
-- @column namespace  text; namespace of the object the event is about
-- @column kind  text; kind of that object
-- @column name  text; name of that object
-- @column uid  text; uid of that object
-- @column reason  text; reason of the event
-- @column type  text; Normal or Warning
-- @column message  text; message of the event
-- @column at  time; when it happened, as the event says
-- @column at_error_seconds  seconds; 0 for microsecond times, 1 for second times
-- @column count  count; occurrences so far, as the event counts
-- @column source  text; component that reported it
-- @column related  json; reference to the related object
-- @column revision  revision; etcd revision that told it, null for a text
-- @column first_at  time; when it happened first, as the event says
-- @column age_seconds  seconds; age of the last occurrence as printed, where only ages are told
-- @column first_age_seconds  seconds; age of the first occurrence as printed
-- @column reasons  json; node groups by reason in an autoscaler's refusal, null for others
-- @source event_occurrences_rows
SELECT
  e.cluster,
  e.namespace,
  e.kind,
  e.name,
  e.uid,
  e.reason,
  e.type,
  e.message,
  e.at,
  e.at_error_seconds,
  e.count,
  e.source,
  e.related,
  e.revision,
  e.first_at,
  e.age_seconds,
  e.first_age_seconds,
  e.reasons
FROM event_occurrences_rows AS e
ORDER BY e.cluster, e.at, e.revision, e.sub
