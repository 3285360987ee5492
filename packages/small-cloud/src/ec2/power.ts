/** Turns an instance into a running machine. */
import type { Clock } from '../clock'
import { policiesOfRole, type Identities, type Role } from '../identity/identities'
import { credentialsDocument, instanceProfileDocument, metadataOf } from '../machines/metadata'
import type { AskRegistry, Machine, MachineSpec } from '../machines/machine'
import type { SimulatedGpu } from '../machines/nvidia-smi'
import type { MachinePool } from '../machines/pool'
import { drawMs, type World } from '../world/world'
import type { Instance, Region } from './model'
import { hasEndpoints, hasInternet } from './routing'

export interface PowerParts {
  world: World
  clock: Clock
  identities: Identities
  regionOf: (instance: Instance) => Region
  /** The registries' answers to a machine. */
  registriesFor: (instance: Instance) => AskRegistry
  pool: MachinePool
}

/** New credentials are created when less than this share of the old ones' lifetime is left. */
const RENEWAL_SHARE = 0.25
const TAG_PATH = 'tags/instance/'

export class PowerSupply {
  constructor(private readonly parts: PowerParts) {}

  /** Creates the machine of an instance without booting it. */
  connect(instance: Instance): Machine {
    const { pool, registriesFor, world } = this.parts
    const { localDisks } = instance.type
    instance.metadata = { ...this.metadata(instance), ...instance.metadata }
    const gpus = gpusOf(instance)
    return pool.connect(instance, {
      userData: Buffer.from(instance.userData, 'base64').toString('utf8'),
      metadata: instance.metadata,
      hopLimit: instance.metadataOptions.hopLimit,
      ...(gpus.length > 0 ? { gpus } : {}),
      ...(world.localDisks && localDisks !== undefined ? { localDisks } : {}),
      ...(hasDocker(instance) ? { docker: registriesFor(instance) } : {}),
    })
  }

  /** Whether the machine's network and role allow its agent to register. */
  canReachServices(instance: Instance): boolean {
    const { role } = instance
    const hasWay = this.hasInternet(instance) || hasEndpoints(this.parts.regionOf(instance), instance)
    return hasWay && role !== undefined && this.mayRegister(role)
  }

  /** Endpoints lead only to services; the Internet requires a gateway. */
  hasInternet(instance: Instance): boolean {
    return hasInternet(this.parts.regionOf(instance), instance)
  }

  private mayRegister(role: Role): boolean {
    const principal = {
      arn: role.arn,
      userId: role.id,
      accessKeyId: '',
      isSession: true,
      policies: policiesOfRole(role),
    }
    return this.parts.identities.judge(principal, { action: 'ssm:UpdateInstanceInformation' }) === 'allowed'
  }

  private metadata(instance: Instance): MachineSpec['metadata'] {
    const { world, clock, identities } = this.parts
    const { role } = instance
    const metadata = metadataOf({
      instanceId: instance.id,
      instanceType: instance.type.name,
      imageId: instance.image.id,
      accountId: world.account,
      region: instance.region,
      zone: instance.subnet.zone.name,
      zoneId: instance.subnet.zone.id,
      privateIp: instance.privateIp,
      architecture: instance.image.architecture,
      capacityType: instance.capacity,
      launchedAt: new Date(instance.launchedAtMs),
      securityGroups: instance.groupIds,
      subnetId: instance.subnet.id,
      vpcId: instance.subnet.vpcId,
    })
    if (instance.publicIp !== undefined) metadata['public-ipv4'] = instance.publicIp
    showTags({ ...instance, metadata })
    if (role === undefined) return metadata
    const profile = {
      arn: `arn:aws:iam::${world.account}:instance-profile/${role.name}`,
      id: role.id.replace('AROA', 'AIPA'),
      updatedAt: new Date(clock.nowMs()),
    }
    metadata['iam/info'] = instanceProfileDocument(profile)
    metadata[`iam/security-credentials/${role.name}`] = renewing(this.parts, identities, { role, instance })
    return metadata
  }
}

/** Updates the tags that the machine sees. */
export function showTags({
  metadata,
  metadataOptions,
  tags,
}: Pick<Instance, 'metadata' | 'metadataOptions' | 'tags'>): void {
  if (metadata === undefined || metadataOptions.instanceMetadataTags !== 'enabled') return
  for (const path of Object.keys(metadata)) if (path.startsWith(TAG_PATH)) delete metadata[path]
  for (const [key, value] of tags) if (!key.startsWith('aws:')) metadata[`${TAG_PATH}${key}`] = value
}

/** Returns the profile's credentials, created on request and renewed before they expire. */
function renewing(
  { world, clock }: PowerParts,
  identities: Identities,
  { role, instance }: { role: Role; instance: Instance },
): () => string {
  let current: { document: string; renewAtMs: number } | undefined
  return () => {
    const nowMs = clock.nowMs()
    if (current !== undefined && nowMs < current.renewAtMs) return current.document
    const durationMs = drawMs(world, 'profileCredentials')
    const {
      accessKeyId,
      secretAccessKey,
      sessionToken = '',
      expiresAtMs,
    } = identities.openSession(role, { name: instance.id, durationMs })
    const document = credentialsDocument({
      accessKeyId,
      secretAccessKey,
      sessionToken,
      updatedAt: new Date(nowMs),
      expiresAt: new Date(expiresAtMs),
    })
    current = { document, renewAtMs: nowMs + durationMs * (1 - RENEWAL_SHARE) }
    return document
  }
}

/** Names of GPUs in the driver that differ from `NVIDIA` and the name of the type. */
const DRIVER_NAMES: Readonly<Record<string, string>> = {
  T4: 'Tesla T4',
  V100: 'Tesla V100-SXM2-16GB',
  H100: 'NVIDIA H100 80GB HBM3',
}

function gpusOf({ type: { accelerator } }: Instance): SimulatedGpu[] {
  if (accelerator?.manufacturer !== 'NVIDIA') return []
  const { name, count, memoryMiB } = accelerator
  const gpu = { name: DRIVER_NAMES[name] ?? `NVIDIA ${name}`, memoryMiB }
  return Array.from({ length: count }, () => ({ ...gpu }))
}

/** Deep learning images include Docker; plain ones do not. */
function hasDocker({ image }: Instance): boolean {
  return image.name.startsWith('Deep Learning')
}
