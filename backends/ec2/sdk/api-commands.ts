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
  /** In more detail: `DeliveryTimedOut`, ... */
  details: string
  exitCode: number
  stdout: string
  stderr: string
}

export interface CommandRequest {
  machineId: string
  comment: string
  lines: string[]
  /** How long the machine may take to fetch it. */
  deliveryTimeoutMs: number
  /** How long it may run there. */
  runTimeoutMs: number
}

export interface CommandsApi {
  /** The state of a machine's agent: `undefined` if it has never registered. */
  agent(machineId: string, signal: AbortSignal): Promise<{ isOnline: boolean } | undefined>
  /** Returns the command's id. */
  send(request: CommandRequest, signal: AbortSignal): Promise<string>
  /** The commands of one machine, newest first. */
  invocations(machineId: string, signal: AbortSignal): Promise<Invocation[]>
  /** `undefined` while the provider does not show it yet. */
  result(commandId: string, machineId: string, signal: AbortSignal): Promise<InvocationResult | undefined>
}
