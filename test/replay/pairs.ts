/** Which event follows which, as a measure of what a history proves. */

interface Attributes {
  activityType?: { name: string }
  workflowType?: { name: string }
  signalName?: string
  acceptedRequest?: { input: { name: string } }
  details?: { data?: { payloads: { data: string }[] } }
  scheduledEventId?: string
  startedEventId?: string
  acceptedEventId?: string
}

export interface NamedEvent {
  eventId: string
  eventType: string
  userMetadata?: { summary?: { data?: string } }
}

const textOf = (data: string): unknown => JSON.parse(Buffer.from(data, 'base64').toString())

/** The name of an activity, child, timer, local activity, signal or update. */
function nameOf(
  event: NamedEvent,
  { activityType, workflowType, ...attributes }: Attributes,
): string | undefined {
  const { signalName, acceptedRequest, details } = attributes
  const marker = details?.data?.payloads[0]
  if (marker !== undefined) return (textOf(marker.data) as { activity_type: string }).activity_type
  const summary = event.eventType.endsWith('TIMER_STARTED') ? event.userMetadata?.summary?.data : undefined
  if (summary !== undefined) return String(textOf(summary))
  return activityType?.name ?? workflowType?.name ?? signalName ?? acceptedRequest?.input.name
}

/** Consecutive events, by type and name; without those that say only when a worker took a task. */
export function pairsIn(workflow: string, events: readonly NamedEvent[]): string[] {
  const names = new Map<string, string>()
  const steps = events.flatMap((event) => {
    const type = event.eventType.replace('EVENT_TYPE_', '')
    if (/^WORKFLOW_TASK|^ACTIVITY_TASK_STARTED/.test(type)) return []
    const attributes = Object.entries(event).find(([key]) => key.endsWith('Attributes'))?.[1] as Attributes
    const { scheduledEventId, startedEventId, acceptedEventId } = attributes
    const before = scheduledEventId ?? acceptedEventId ?? startedEventId
    const name = nameOf(event, attributes) ?? names.get(before ?? '') ?? ''
    names.set(event.eventId, name)
    return [`${type} ${name}`]
  })
  const pairs = steps.map((step, index) => `${workflow}: ${step}, then ${steps[index + 1] ?? 'the end'}`)
  return [...new Set(pairs)]
}
