/** SendCommand and the calls that describe commands. */
import { z } from 'zod'
import type { Ec2 } from '../ec2/ec2'
import type { Instance } from '../ec2/model'
import { ApiError } from '../wire/errors'
import { action, type Action } from '../wire/service'
import type { Agents } from './agents'
import { commandWords, elapsed, invocationWords, iso, PLUGIN, statusOf } from './command-words'
import type { Command, Commands } from './commands'
import { pageOf, paging } from './paging'

export interface CommandParts {
  ec2: Ec2
  agents: Agents
  commands: Commands
}

const SHELL_SCRIPT = 'AWS-RunShellScript'
const DELIVERY_SECONDS = 3600
const EXECUTION_SECONDS = 3600
const EXECUTION_SECONDS_MAX = 172_800
const INSTANCES_MAX = 50
/** Maximum size of a command document with its parameters. */
const DOCUMENT_BYTES_MAX = 64 * 1024

const target = z.strictObject({ Key: z.string(), Values: z.array(z.string()).default([]) })
const sendInput = z.strictObject({
  DocumentName: z.string(),
  DocumentVersion: z.string().optional(),
  InstanceIds: z.array(z.string()).max(INSTANCES_MAX).default([]),
  Targets: z.array(target).max(5).default([]),
  Parameters: z.record(z.string(), z.array(z.string())).default({}),
  Comment: z.string().max(100).default(''),
  TimeoutSeconds: z.int().min(30).max(2_592_000).default(DELIVERY_SECONDS),
  MaxConcurrency: z.string().optional(),
  MaxErrors: z.string().optional(),
})
type SendInput = z.output<typeof sendInput>

export function commandActions(parts: CommandParts): Record<string, Action> {
  return { ...sendActions(parts), ...tellActions(parts), ...listActions(parts) }
}

function sendActions({ ec2, agents, commands }: CommandParts): Record<string, Action> {
  return {
    SendCommand: action({
      input: sendInput,
      isMutating: true,
      run(wish, { region }) {
        checkDocument(wish)
        const instances = addressed({ ec2, agents, commands }, wish, region)
        const { workingDirectory: [workingDirectory] = [] } = wish.Parameters
        const command: Command = {
          id: ec2.parts.ids.uuid(),
          region,
          comment: wish.Comment,
          document: wish.DocumentName,
          parameters: wish.Parameters,
          instanceIds: wish.InstanceIds,
          targets: wish.Targets,
          requestedAtMs: ec2.nowMs,
          visibleAtMs: ec2.nowMs + ec2.drawMs('invocationHidden'),
          deliveryTimeoutMs: wish.TimeoutSeconds * 1000,
          executionTimeoutMs: executionSeconds(wish) * 1000,
          ...(workingDirectory === undefined ? {} : { workingDirectory }),
          invocations: new Map(),
        }
        commands.send(command, instances)
        return { Command: commandWords(command) }
      },
    }),
    CancelCommand: action({
      input: z.strictObject({ CommandId: z.string(), InstanceIds: z.array(z.string()).default([]) }),
      isMutating: true,
      run({ CommandId, InstanceIds }, { region }) {
        const command = commands.commands.get(CommandId)
        if (command?.region !== region) throw new ApiError('InvalidCommandId', 'The command ID is not valid.')
        commands.cancel(command, InstanceIds)
        return {}
      },
    }),
  }
}

function tellActions({ ec2, commands }: CommandParts): Record<string, Action> {
  return {
    GetCommandInvocation: action({
      input: z.strictObject({
        CommandId: z.string().regex(/^[0-9a-f-]{36}$/, 'is not the id of a command'),
        InstanceId: z.string(),
        PluginName: z.string().optional(),
      }),
      run({ CommandId, InstanceId, PluginName }, { region }) {
        const command = commands.commands.get(CommandId)
        const invocation = command?.region === region ? command.invocations.get(InstanceId) : undefined
        if (command === undefined || invocation === undefined || command.visibleAtMs > ec2.nowMs)
          throw new ApiError('InvocationDoesNotExist', '')
        if (PluginName !== undefined && PluginName !== PLUGIN)
          throw new ApiError('InvalidPluginName', 'The plugin name is not valid.')
        const isOver = invocation.endedAtMs !== undefined
        return {
          CommandId,
          InstanceId,
          Comment: command.comment,
          DocumentName: command.document,
          DocumentVersion: '$DEFAULT',
          PluginName: PLUGIN,
          ResponseCode: invocation.exitCode,
          ExecutionStartDateTime: iso(invocation.startedAtMs),
          ExecutionElapsedTime: elapsed(invocation),
          ExecutionEndDateTime: iso(invocation.endedAtMs),
          Status: invocation.status,
          StatusDetails: invocation.details,
          StandardOutputContent: isOver ? invocation.stdout : '',
          StandardOutputUrl: '',
          StandardErrorContent: isOver ? invocation.stderr : '',
          StandardErrorUrl: '',
          CloudWatchOutputConfig: { CloudWatchLogGroupName: '', CloudWatchOutputEnabled: false },
        }
      },
    }),
  }
}

const listFilter = z.strictObject({ key: z.string(), value: z.string() })
const listInput = z.strictObject({
  CommandId: z.string().optional(),
  InstanceId: z.string().optional(),
  Filters: z.array(listFilter).default([]),
  ...paging(50),
})

function listActions({ ec2, commands }: CommandParts): Record<string, Action> {
  /** Newest first, limited to visible commands. */
  const shown = (region: string, { CommandId }: { CommandId?: string | undefined }): Command[] => {
    const known = [...commands.commands.values()].filter(
      (each) => each.region === region && each.visibleAtMs <= ec2.nowMs,
    )
    return known.filter(({ id }) => (CommandId ?? id) === id).reverse()
  }
  return {
    ListCommands: action({
      input: listInput,
      run(wish, { region }) {
        const { InstanceId, Filters } = wish
        const found = shown(region, wish)
          .filter(({ invocations }) => InstanceId === undefined || invocations.has(InstanceId))
          .filter((command) =>
            Filters.every((each) => fits(each, { command, status: statusOf(command).status })),
          )
        const { items, NextToken } = pageOf(found, wish)
        return { Commands: items.map(commandWords), NextToken }
      },
    }),
    ListCommandInvocations: action({
      input: listInput.extend({ Details: z.boolean().default(false) }),
      run(wish, { region }) {
        const { InstanceId, Filters, Details } = wish
        const found = shown(region, wish)
          .flatMap(({ invocations }) => [...invocations.values()])
          .filter(({ instance }) => (InstanceId ?? instance.id) === instance.id)
          .filter(({ command, status }) => Filters.every((each) => fits(each, { command, status })))
        const { items, NextToken } = pageOf(found, wish)
        return { CommandInvocations: items.map((each) => invocationWords(each, Details)), NextToken }
      },
    }),
  }
}

function fits(
  { key, value }: z.output<typeof listFilter>,
  { command, status }: { command: Command; status: string },
): boolean {
  if (key === 'InvokedAfter') return command.requestedAtMs > Date.parse(value)
  if (key === 'InvokedBefore') return command.requestedAtMs < Date.parse(value)
  if (key === 'Status') return status === value
  if (key === 'DocumentName') return command.document === value
  throw new ApiError('InvalidFilterKey', `The filter key ${key} is not valid.`)
}

function checkDocument({ DocumentName, Parameters, DocumentVersion }: SendInput): void {
  if (DocumentName !== SHELL_SCRIPT)
    throw new ApiError(
      'InvalidDocument',
      `Document with name ${DocumentName} does not exist. This small cloud has ${SHELL_SCRIPT}.`,
    )
  if (DocumentVersion !== undefined && !['$DEFAULT', '$LATEST', '1'].includes(DocumentVersion))
    throw new ApiError('InvalidDocumentVersion', 'The document version is not valid or does not exist.')
  const unknown = Object.keys(Parameters).find(
    (name) => !['commands', 'workingDirectory', 'executionTimeout'].includes(name),
  )
  if (unknown !== undefined)
    throw new ApiError('InvalidParameters', `Parameter ${unknown} is not defined in the document`)
  if ((Parameters.commands ?? []).length === 0)
    throw new ApiError('InvalidParameters', 'Parameter commands is required')
  if (Buffer.byteLength(JSON.stringify(Parameters)) > DOCUMENT_BYTES_MAX)
    throw new ApiError('MaxDocumentSizeExceeded', 'The size limit of a document is 64 KB.')
}

function executionSeconds({ Parameters }: SendInput): number {
  const [text = String(EXECUTION_SECONDS)] = Parameters.executionTimeout ?? []
  const seconds = Number(text)
  if (!Number.isInteger(seconds) || seconds < 5 || seconds > EXECUTION_SECONDS_MAX)
    throw new ApiError('InvalidParameters', `executionTimeout must be 5 to ${EXECUTION_SECONDS_MAX} seconds`)
  return seconds
}

/** Returns the targets of a command. A named instance must have a registered agent. */
function addressed(
  { agents, commands }: CommandParts,
  { InstanceIds, Targets }: SendInput,
  region: string,
): Instance[] {
  if (InstanceIds.length > 0 && Targets.length > 0)
    throw new ApiError('ValidationException', 'Give either InstanceIds or Targets')
  if (InstanceIds.length === 0 && Targets.length === 0)
    throw new ApiError('ValidationException', 'Either InstanceIds or Targets must be given')
  if (new Set(InstanceIds).size < InstanceIds.length)
    throw new ApiError(
      'DuplicateInstanceId',
      'You cannot specify an instance ID in more than one association.',
    )
  const missing = InstanceIds.filter((id) => agents.find(id, region) === undefined)
  if (missing.length > 0)
    throw new ApiError(
      'InvalidInstanceId',
      `Instances [[${missing.join(', ')}]] not in a valid state for account`,
    )
  if (Targets.length > 0) return commands.targeted(region, Targets)
  return InstanceIds.map((id) => agents.find(id, region)!.instance)
}
