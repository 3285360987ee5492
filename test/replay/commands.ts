/** The inputs of a workflow's commands: as its history has them, and as the code gives them when that history is replayed. */
import { Worker } from '@temporalio/worker'
import { unstamped } from '../../core/stamps'
import { capturingWorkflowBundle } from '../support/workflow-bundle'

interface Payload {
  data?: string | Uint8Array | null
}
interface Payloads {
  payloads?: Payload[]
}
interface Failure {
  message?: string | null
  applicationFailureInfo?: { type?: string; details?: Payloads }
  canceledFailureInfo?: { details?: Payloads }
}
type Fields = Record<string, Payload>

/** An event of a history, as far as its inputs go. */
export interface HistoryEvent {
  eventId: string
  eventType: string
  userMetadata?: { summary?: { data?: string } }
  workflowExecutionStartedEventAttributes?: { workflowId?: string }
  activityTaskScheduledEventAttributes?: {
    activityId: string
    activityType: { name: string }
    input?: Payloads
  }
  timerStartedEventAttributes?: { timerId: string; startToFireTimeout: string }
  startChildWorkflowExecutionInitiatedEventAttributes?: { workflowId: string; input?: Payloads }
  signalExternalWorkflowExecutionInitiatedEventAttributes?: { signalName: string; input?: Payloads }
  upsertWorkflowSearchAttributesEventAttributes?: { searchAttributes: { indexedFields: Fields } }
  workflowExecutionUpdateCompletedEventAttributes?: { outcome: { success?: Payloads; failure?: Failure } }
  workflowExecutionContinuedAsNewEventAttributes?: { input?: Payloads }
  workflowExecutionCompletedEventAttributes?: { result?: Payloads }
  workflowExecutionFailedEventAttributes?: { failure: Failure }
  workflowExecutionCanceledEventAttributes?: { details?: Payloads }
}

export interface History {
  events: HistoryEvent[]
}

/** The SDK's form of a command. */
interface SentCommand {
  userMetadata?: { summary?: Payload }
  scheduleActivity?: { activityId: string; activityType: string; arguments: Payload[] }
  scheduleLocalActivity?: { activityType: string; arguments: Payload[] }
  startTimer?: {
    seq: number
    startToFireTimeout: { seconds?: number | { low: number } | null; nanos?: number | null }
  }
  startChildWorkflowExecution?: { workflowId: string; input: Payload[] }
  signalExternalWorkflowExecution?: { signalName: string; args: Payload[] }
  upsertWorkflowSearchAttributes?: { searchAttributes: { indexedFields: Fields } }
  updateResponse?: { completed?: Payload; rejected?: Failure; accepted?: unknown }
  continueAsNewWorkflowExecution?: { arguments: Payload[] }
  completeWorkflowExecution?: { result?: Payload }
  failWorkflowExecution?: { failure: Failure }
  cancelWorkflowExecution?: object
}

/** A command in words: what it does, which one of its kind it is, and what goes into it. */
export interface Command {
  what: string
  input: unknown
  /** Missing for a command of a replay. */
  eventId?: string
}

const valueOf = ({ data }: Payload): unknown => {
  if (data === undefined || data === null) return undefined
  const bytes = typeof data === 'string' ? Buffer.from(data, 'base64') : Buffer.from(data)
  return bytes.length === 0 ? undefined : (JSON.parse(bytes.toString()) as unknown)
}
const summaryOf = ({ userMetadata }: { userMetadata?: { summary?: Payload } }): unknown =>
  userMetadata?.summary && valueOf(userMetadata.summary)
/** Without the stamp that says what the values are for: it has the run in it. */
const valuesOf = (payloads: Payload[] | undefined): unknown => unstamped((payloads ?? []).map(valueOf)).args
const fieldsOf = ({ indexedFields }: { indexedFields: Fields }): unknown =>
  Object.fromEntries(Object.entries(indexedFields).map(([name, payload]) => [name, valueOf(payload)]))
const failureOf = ({ message, applicationFailureInfo: info }: Failure): unknown => ({
  message,
  type: info?.type,
  details: valuesOf(info?.details?.payloads),
})
const msOf = (duration: string): number => Math.round(Number(duration.replace(/s$/, '')) * 1_000)

/** Counts the commands of each kind that have no number of their own. */
function counted(): (kind: string) => string {
  const counts = new Map<string, number>()
  return (kind) => {
    const count = (counts.get(kind) ?? 0) + 1
    counts.set(kind, count)
    return `${kind} ${count}`
  }
}

/** The commands that a history has. Those of local activities are not in it. */
export function commandsOf({ events }: History): Command[] {
  const next = counted()
  return events.flatMap((event) => {
    const command = commandOf(event, next)
    return command === undefined ? [] : [{ ...command, eventId: event.eventId }]
  })
}

function commandOf(event: HistoryEvent, next: (kind: string) => string): Command | undefined {
  const activity = event.activityTaskScheduledEventAttributes
  if (activity)
    return {
      what: `activity ${activity.activityId} ${activity.activityType.name}`,
      input: valuesOf(activity.input?.payloads),
    }
  const timer = event.timerStartedEventAttributes
  if (timer)
    return {
      what: `timer ${timer.timerId}`,
      input: { durationMs: msOf(timer.startToFireTimeout), summary: summaryOf(event) },
    }
  const child = event.startChildWorkflowExecutionInitiatedEventAttributes
  if (child) return { what: next(`child ${child.workflowId}`), input: valuesOf(child.input?.payloads) }
  const signal = event.signalExternalWorkflowExecutionInitiatedEventAttributes
  if (signal) return { what: next(`signal ${signal.signalName}`), input: valuesOf(signal.input?.payloads) }
  const upsert = event.upsertWorkflowSearchAttributesEventAttributes
  if (upsert) return { what: next('search attributes'), input: fieldsOf(upsert.searchAttributes) }
  const update = event.workflowExecutionUpdateCompletedEventAttributes
  if (update) return { what: next('answer to an update'), input: answerOf(update.outcome) }
  return endOf(event)
}

function answerOf({ success, failure }: { success?: Payloads; failure?: Failure }): unknown {
  return failure ? failureOf(failure) : (success?.payloads ?? []).map(valueOf)
}

function endOf(event: HistoryEvent): Command | undefined {
  const again = event.workflowExecutionContinuedAsNewEventAttributes
  if (again) return { what: 'fresh history', input: valuesOf(again.input?.payloads) }
  const completed = event.workflowExecutionCompletedEventAttributes
  if (completed) return { what: 'result', input: (completed.result?.payloads ?? []).map(valueOf) }
  const failed = event.workflowExecutionFailedEventAttributes
  if (failed) return { what: 'failure', input: failureOf(failed.failure) }
  return event.workflowExecutionCanceledEventAttributes ? { what: 'cancellation', input: null } : undefined
}

/** A replayed history: the commands that the code gives, what it shows, and why it cannot be continued. */
export interface Replayed {
  /** With those of local activities. */
  commands: Command[]
  /** What a history does not have: the inputs of local activities, and how the answers to queries change. */
  shown: string[]
  error: Error | undefined
}

/** Replays one history. */
export async function replayed(history: History): Promise<Replayed> {
  const workflowBundle = await capturingWorkflowBundle()
  const next = counted()
  const commands: Command[] = []
  const shown: string[] = []
  let seen = new Map<string, unknown>()
  const fn = (_info: unknown, sent: SentCommand[], views: string): void => {
    const given = sent.flatMap((command) => sentCommandOf(command, next) ?? [])
    commands.push(...given)
    shown.push(
      ...given.filter(({ what }) => what.startsWith('local activity ')).map((it) => JSON.stringify(it)),
    )
    const now = new Map(fieldsIn(JSON.parse(views), ''))
    const changed = [...new Set([...seen.keys(), ...now.keys()])].filter(
      (key) => seen.get(key) !== now.get(key),
    )
    if (changed.length > 0)
      shown.push(JSON.stringify(Object.fromEntries(changed.map((key) => [key, now.get(key) ?? null]))))
    seen = now
  }
  const sinks = { capture: { activation: { fn, callDuringReplay: true } } }
  const named = [{ workflowId: workflowIdIn(history), history }]
  let error: Error | undefined
  for await (const result of Worker.runReplayHistories({ workflowBundle, sinks }, named)) error = result.error
  return { commands, shown, error }
}

/** The values in a value, by path; a text of several lines is a list of them. */
function fieldsIn(value: unknown, path: string): [string, unknown][] {
  const parts = typeof value === 'string' && value.includes('\n') ? value.split('\n') : value
  if (typeof parts !== 'object' || parts === null) return [[path, parts]]
  return Object.entries(parts).flatMap(([key, inner]) => fieldsIn(inner, `${path}/${key}`))
}

/** Workflows tell their own id to others. Older servers did not write it into the history. */
function workflowIdIn({ events }: History): string {
  return events[0]?.workflowExecutionStartedEventAttributes?.workflowId ?? 'replayed'
}

function sentCommandOf(command: SentCommand, next: (kind: string) => string): Command | undefined {
  const { scheduleActivity: activity, scheduleLocalActivity: local, startTimer: timer } = command
  if (activity)
    return {
      what: `activity ${activity.activityId} ${activity.activityType}`,
      input: valuesOf(activity.arguments),
    }
  if (local) return { what: next(`local activity ${local.activityType}`), input: valuesOf(local.arguments) }
  if (timer) {
    const { seconds, nanos } = timer.startToFireTimeout
    const whole = typeof seconds === 'object' && seconds !== null ? seconds.low : (seconds ?? 0)
    const durationMs = whole * 1_000 + (nanos ?? 0) / 1_000_000
    return { what: `timer ${timer.seq}`, input: { durationMs, summary: summaryOf(command) } }
  }
  const { startChildWorkflowExecution: child, signalExternalWorkflowExecution: signal } = command
  if (child) return { what: next(`child ${child.workflowId}`), input: valuesOf(child.input) }
  if (signal) return { what: next(`signal ${signal.signalName}`), input: valuesOf(signal.args) }
  const { upsertWorkflowSearchAttributes: upsert, updateResponse: update } = command
  if (upsert) return { what: next('search attributes'), input: fieldsOf(upsert.searchAttributes) }
  if (update?.completed) return { what: next('answer to an update'), input: [valueOf(update.completed)] }
  if (update?.rejected) return { what: next('answer to an update'), input: failureOf(update.rejected) }
  return sentEndOf(command)
}

function sentEndOf(command: SentCommand): Command | undefined {
  const { continueAsNewWorkflowExecution: again, completeWorkflowExecution: completed } = command
  if (again) return { what: 'fresh history', input: valuesOf(again.arguments) }
  if (completed) return { what: 'result', input: completed.result ? [valueOf(completed.result)] : [] }
  const { failWorkflowExecution: failed, cancelWorkflowExecution: cancelled } = command
  if (failed) return { what: 'failure', input: failureOf(failed.failure) }
  return cancelled ? { what: 'cancellation', input: null } : undefined
}

/** Each command of a history that the code gives with another input; `adapted` is what the history's input is called today. */
export function changesOf(
  history: History,
  given: readonly Command[],
  adapted = ({ input }: Command): unknown => input,
): string[] {
  const inputs = new Map(given.map(({ what, input }) => [what, input]))
  return commandsOf(history).flatMap((command) => {
    const { what, eventId } = command
    const found = inputs.has(what) ? differences(adapted(command), inputs.get(what)) : ['is missing']
    return found.map((each) => `event ${eventId}, ${what}: ${each}`)
  })
}

/** Words for people, which may change any day: only whether there are any is compared. */
const WORDS = ['message', 'hint', 'summary', 'text', 'webhookTrouble']

/** Where two values differ, by JSON path. An absent field is the same as an undefined one. */
function differences(expected: unknown, actual: unknown, path = '$'): string[] {
  if (typeof expected !== 'object' || typeof actual !== 'object' || expected === null || actual === null)
    return Object.is(expected, actual) ? [] : [`${path} was ${inShort(expected)}, is ${inShort(actual)}`]
  const left = expected as Record<string, unknown>
  const right = actual as Record<string, unknown>
  const keys = [...new Set([...Object.keys(left), ...Object.keys(right)])]
  const areWords = (key: string): boolean =>
    WORDS.includes(key) && typeof left[key] === 'string' && typeof right[key] === 'string'
  return keys
    .filter((key) => !areWords(key))
    .flatMap((key) =>
      differences(left[key], right[key], Array.isArray(expected) ? `${path}[${key}]` : `${path}.${key}`),
    )
}

function inShort(value: unknown): string {
  const text = JSON.stringify(value) ?? 'absent'
  return text.length > 120 ? `${text.slice(0, 120)}...` : text
}
