/** The JSON description of commands. */
import type { Command, Invocation } from './commands'

/** The only step of the document. */
export const PLUGIN = 'aws:runShellScript'
/** Limit of the output of one step in lists. */
const PLUGIN_OUTPUT_CHARS_MAX = 2500

/** The state of a command is derived from its invocations. */
export function statusOf({ invocations }: Command): { status: string; details: string } {
  const all = [...invocations.values()]
  const first = (status: string): Invocation | undefined => all.find((each) => each.status === status)
  const open = first('InProgress') ?? first('Cancelling') ?? first('Delayed') ?? first('Pending')
  const bad = first('Failed') ?? first('TimedOut') ?? first('Cancelled')
  const telling = open ?? bad ?? all[0]
  if (telling === undefined) return { status: 'Failed', details: 'NoInstancesInTag' }
  return { status: telling.status, details: telling.details }
}

export function commandWords(command: Command): object {
  const all = [...command.invocations.values()]
  const { status, details } = statusOf(command)
  const isDone = ({ endedAtMs }: Invocation): boolean => endedAtMs !== undefined
  return {
    CommandId: command.id,
    DocumentName: command.document,
    DocumentVersion: '$DEFAULT',
    Comment: command.comment,
    ExpiresAfter: (command.requestedAtMs + command.deliveryTimeoutMs + command.executionTimeoutMs) / 1000,
    Parameters: command.parameters,
    InstanceIds: command.instanceIds,
    Targets: command.targets,
    RequestedDateTime: command.requestedAtMs / 1000,
    Status: status,
    StatusDetails: details,
    MaxConcurrency: '50',
    MaxErrors: '0',
    TargetCount: all.length,
    CompletedCount: all.filter(isDone).length,
    ErrorCount: all.filter((each) => each.status === 'Failed').length,
    DeliveryTimedOutCount: all.filter((each) => each.details === 'DeliveryTimedOut').length,
    TimeoutSeconds: command.deliveryTimeoutMs / 1000,
  }
}

export function invocationWords(invocation: Invocation, withDetails: boolean): object {
  const { command, instance, status, details, exitCode, stdout, stderr, startedAtMs, endedAtMs } = invocation
  const output = [stdout, stderr === '' ? '' : `\n----------ERROR-------\n${stderr}`].join('')
  const plugin = {
    Name: PLUGIN,
    Status: status,
    StatusDetails: details,
    ResponseCode: exitCode,
    ResponseStartDateTime: startedAtMs === undefined ? undefined : startedAtMs / 1000,
    ResponseFinishDateTime: endedAtMs === undefined ? undefined : endedAtMs / 1000,
    Output: output.slice(0, PLUGIN_OUTPUT_CHARS_MAX),
  }
  return {
    CommandId: command.id,
    InstanceId: instance.id,
    InstanceName: '',
    Comment: command.comment,
    DocumentName: command.document,
    DocumentVersion: '$DEFAULT',
    RequestedDateTime: command.requestedAtMs / 1000,
    Status: status,
    StatusDetails: details,
    StandardOutputUrl: '',
    StandardErrorUrl: '',
    CommandPlugins: withDetails && startedAtMs !== undefined ? [plugin] : [],
  }
}

export function iso(ms: number | undefined): string {
  return ms === undefined ? '' : new Date(ms).toISOString()
}

export function elapsed({ startedAtMs, endedAtMs }: Invocation): string {
  return startedAtMs === undefined || endedAtMs === undefined
    ? ''
    : `PT${((endedAtMs - startedAtMs) / 1000).toFixed(3)}S`
}
