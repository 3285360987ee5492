import { machineUser } from './host'
import type { MachineMetadata } from './metadata'
import { namespacesFor } from './namespaces'
import type { SimulatedGpu } from './nvidia-smi'
import { RunningMachine } from './running-machine'
import { findPython } from './toolbox'

/** What a container engine on the machine asks a registry; see `programs/docker.py`. */
export interface RegistryQuestion {
  verb: 'login' | 'pull'
  /** Its host; `docker.io` for Docker's own. */
  registry: string
  /** To be pulled: the whole name, with a tag. */
  image?: string
  login?: { username: string; password: string }
}

/** An image that is there after so many milliseconds, or what docker prints. */
export type RegistryAnswer = { pullMs: number; digest: string } | { refusal: string }

export type AskRegistry = (question: RegistryQuestion) => Promise<RegistryAnswer>

export interface MachineSpec {
  /** Legal as a file name; the instance id. */
  id: string
  /** The machine's disk: made when it is missing, kept when the machine dies. */
  directory: string
  /** As the machine reads it, decoded. Empty for none; otherwise a script that begins with `#!`. */
  userData: string
  /** Read anew at each request: values may be changed, added and removed while the machine runs. */
  metadata: MachineMetadata
  /** `HttpPutResponseHopLimit` of its metadata service. 1 unless told. */
  hopLimit?: number
  /** For everything that runs on the machine, such as `AWS_ENDPOINT_URL`. */
  environment: Record<string, string>
  /** From power on to the start of the user data, in milliseconds. */
  bootMs: number
  /** Read anew whenever `nvidia-smi` is called. Without any there is no `nvidia-smi`. */
  gpus?: SimulatedGpu[]
  /** Answers for all registries. Without it there is no `docker`. */
  docker?: AskRegistry
  /** How the machine is kept together; the best that this host can do unless told. */
  enclosure?: 'namespaces' | 'groups'
}

/** What an agent on the machine is asked to execute. */
export interface AgentCommand {
  id: string
  /** The lines of one shell script; the first may be a `#!` line. */
  lines: string[]
  /** From its start; then its process group is killed. */
  timeoutMs: number
  /** As the machine sees it. */
  workingDirectory?: string
  environment?: Record<string, string>
}

export interface AgentAnswer {
  /** 137 when it was killed: timed out or cancelled. */
  exitCode: number
  /** Whole; whoever shows it truncates it. */
  stdout: string
  stderr: string
  timedOut: boolean
}

/** `shutdown`: the machine was told to, from inside or by its power button. `init-ended`: its first process died. */
export type PowerOff = 'shutdown' | 'init-ended'

/** A machine as a process tree of this host, never with the rights of root. It dies with this process at the latest. */
export interface Machine {
  readonly id: string
  /** Where its metadata service listens, once booted: `http://127.0.0.1:PORT`. */
  readonly metadataEndpoint: string
  /** Resolves when user data has been started, or there is none. Rejects when it is killed before. */
  boot(): Promise<void>
  /**
   * What an agent on the machine would execute. Rejects with `MachineDead` when the machine dies meanwhile.
   * What the script left running in other sessions or units goes on.
   */
  run(command: AgentCommand): Promise<AgentAnswer>
  /** Kills the process group of a command, as an agent does it; nothing happens when it has ended. */
  cancel(commandId: string): void
  /** The power button: units are stopped in good order, then the machine is off. Resolves when it is. */
  shutDown(): Promise<void>
  /** Power cut: every process that it ever started is dead when this resolves. May be called again. */
  kill(): Promise<void>
  /** Called once, when the machine has gone off by itself or by its power button; not after `kill`. */
  onPowerOff(listener: (how: PowerOff) => void): void
  /** The serial console so far: the boot, and what user data prints. */
  console(): Promise<string>
}

export function createMachine(spec: MachineSpec): Machine {
  return new RunningMachine(spec)
}

/** Throws, saying what to do, where this host lacks what a machine needs. */
export async function checkHost(): Promise<void> {
  const namespaces = await namespacesFor('probe', '/', await machineUser())
  await findPython(namespaces?.hidden ?? [])
}
