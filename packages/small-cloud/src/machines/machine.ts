import { machineUser } from './host'
import type { MachineMetadata } from './metadata'
import { namespacesFor } from './namespaces'
import type { SimulatedGpu } from './nvidia-smi'
import { RunningMachine } from './running-machine'
import { findPython } from './toolbox'

/** A question of the machine's container engine to a registry; see `programs/docker.py`. */
export interface RegistryQuestion {
  verb: 'login' | 'pull'
  /** The registry's host; `docker.io` for Docker Hub. */
  registry: string
  /** The image to pull: the full name with a tag. */
  image?: string
  login?: { username: string; password: string }
}

/** An image that is ready after this many milliseconds, or docker's error message. */
export type RegistryAnswer = { pullMs: number; digest: string } | { refusal: string }

export type AskRegistry = (question: RegistryQuestion) => Promise<RegistryAnswer>

export interface MachineSpec {
  /** The instance id; must be a valid file name. */
  id: string
  /** The machine's disk: created when missing, kept when the machine dies. */
  directory: string
  /** Decoded user data. Empty for none; otherwise a script that begins with `#!`, or a `#cloud-config` with `write_files` below /var. */
  userData: string
  /** Metadata, read again at each request: values may be changed, added and removed while the machine runs. */
  metadata: MachineMetadata
  /** `HttpPutResponseHopLimit` of its metadata service. Default 1. */
  hopLimit?: number
  /** Variables for all programs on the machine, such as `AWS_ENDPOINT_URL`. */
  environment: Record<string, string>
  /** Time from power-on to the start of the user data, in milliseconds. */
  bootMs: number
  /** Hostname for machines in namespaces; this host's when missing. */
  hostname?: string
  /** GPUs, read again at each call of `nvidia-smi`. Without GPUs the machine has no `nvidia-smi`. */
  gpus?: SimulatedGpu[]
  /** Local NVMe disks: visible in /sys/block of machines in namespaces, with programs that format and mount them. Empty at each boot. */
  localDisks?: { count: number; sizeGb: number }
  /** Answers for all registries. Without this function the machine has no `docker`. */
  docker?: AskRegistry
  /**
   * Makes the machine a container without an init system. Its console has only its own output, and its owner ends it with its user data,
   * whose exit code this function gets; 128 and the number of a signal that ended it.
   */
  onExit?: (exitCode: number) => void
  /** How the machine's processes are isolated; default: the best method that this host supports. */
  enclosure?: 'namespaces' | 'groups'
}

/** A command for the agent on a machine. */
export interface AgentCommand {
  id: string
  /** The lines of one shell script; the first may be a `#!` line. */
  lines: string[]
  /** Measured from its start; afterwards its process group is killed. */
  timeoutMs: number
  /** A path on the machine. */
  workingDirectory?: string
  environment?: Record<string, string>
}

export interface AgentAnswer {
  /** 137 when it was killed: timed out or cancelled. */
  exitCode: number
  /** The complete output; callers truncate it. */
  stdout: string
  stderr: string
  timedOut: boolean
}

/** `shutdown`: requested from inside or by the power button. `init-ended`: its first process died. */
export type PowerOff = 'shutdown' | 'init-ended'

/** A machine as a process tree of this host, never with root privileges. It dies with this process at the latest. */
export interface Machine {
  readonly id: string
  /** The address of its metadata service after boot: `http://127.0.0.1:PORT`. */
  readonly metadataEndpoint: string
  /** Resolves when user data has been started, or at once without user data. Rejects when the machine is killed earlier. */
  boot(): Promise<void>
  /**
   * Runs a command like the machine's agent. Rejects with `MachineDead` when the machine dies meanwhile. Processes that the script left
   * running in other sessions or units continue.
   */
  run(command: AgentCommand): Promise<AgentAnswer>
  /** Kills the process group of a command, like the agent; does nothing when it has ended. */
  cancel(commandId: string): void
  /** Presses the power button: units are stopped in order, then the machine turns off. Resolves when it is off. */
  shutDown(): Promise<void>
  /** Cuts the power: when this resolves, every process that the machine ever started is dead. May be called again. */
  kill(): Promise<void>
  /** Called once, when the machine has powered itself off or by its power button; not after `kill`. */
  onPowerOff(listener: (how: PowerOff) => void): void
  /** Whether a process of this host belongs to the machine; Linux only. */
  owns(pid: number): boolean
  /** Returns the serial console so far: the boot, and the output of user data. */
  console(): Promise<string>
}

export function createMachine(spec: MachineSpec): Machine {
  return new RunningMachine(spec)
}

/** Throws an error with instructions when this host lacks a requirement of machines, or of containers. */
export async function checkHost({ hasContainers = false } = {}): Promise<void> {
  const namespaces = await namespacesFor({ id: 'probe', directory: '/', user: await machineUser() })
  if (hasContainers && namespaces === undefined)
    throw new Error(
      "Modal's containers need user namespaces, which this host does not let their user create (docker: --security-opt seccomp=unconfined; Ubuntu: sysctl kernel.apparmor_restrict_unprivileged_userns=0). Allow them, or simulate other providers.",
    )
  await findPython(namespaces?.hidden ?? [])
}
