/** A command on a machine, as the provider's agent reports it. */
export interface Invocation {
  commandId: string
  comment: string
  requestedAtMs: number
  /** `Pending`, `InProgress`, `Success`, `Failed`, ... */
  status: string
}

export interface InvocationResult {
  status: string
  /** Detailed status: `DeliveryTimedOut`, ... */
  details: string
  exitCode: number
  stdout: string
  stderr: string
}

interface CommandRequest {
  machineId: string
  comment: string
  lines: string[]
  /** Time limit for the machine to fetch the command. */
  deliveryTimeoutMs: number
  /** Time limit for its run. */
  runTimeoutMs: number
}

export interface CommandsApi {
  /** Returns the state of a machine's agent: `undefined` if it has never registered. */
  agent(machineId: string, signal: AbortSignal): Promise<{ isOnline: boolean } | undefined>
  /** Returns the command's id. */
  send(request: CommandRequest, signal: AbortSignal): Promise<string>
  /** The commands of one machine, newest first. */
  invocations(machineId: string, signal: AbortSignal): Promise<Invocation[]>
  /** Returns the result; `undefined` while the provider does not show it yet. */
  result(commandId: string, machineId: string, signal: AbortSignal): Promise<InvocationResult | undefined>
}
