/** The initial state of a region: its network and its images. */
import type { World, RegionPlan } from '../world/world'
import { firstNetwork, lastingId } from './first-network'
import type { Image, Region } from './model'

export function makeRegion(world: World, plan: RegionPlan, nowMs: number): Region {
  return {
    plan,
    ...firstNetwork(world, plan, nowMs),
    images: imagesOf(world, plan.name),
    instances: new Map(),
    volumes: new Map(),
    spotRequests: new Map(),
    reservations: new Map(),
    templates: new Map(),
    fleets: new Map(),
    createdAtMs: nowMs,
  }
}

interface ImagePlan {
  name: string
  description: string
  ownerAlias: string
  rootDevice: string
  rootGiB: number
  parameter: string
}

/** Images named by the public parameters of a region. */
const IMAGES: readonly ImagePlan[] = [
  ...['22.04', '24.04'].flatMap((version) => [
    deepLearning(
      `base-oss-nvidia-driver-gpu-ubuntu-${version}`,
      `Deep Learning Base OSS Nvidia Driver GPU AMI (Ubuntu ${version})`,
    ),
    {
      name: `ubuntu/images/hvm-ssd-gp3/ubuntu-${version}-amd64-server-20261101`,
      description: `Canonical, Ubuntu, ${version}, amd64`,
      ownerAlias: 'amazon',
      rootDevice: '/dev/sda1',
      rootGiB: 8,
      parameter: `/aws/service/canonical/ubuntu/server/${version}/stable/current/amd64/hvm/ebs-gp${version === '22.04' ? 2 : 3}/ami-id`,
    },
  ]),
  deepLearning(
    'base-oss-nvidia-driver-gpu-amazon-linux-2023',
    'Deep Learning Base OSS Nvidia Driver GPU AMI (Amazon Linux 2023)',
  ),
  deepLearning(
    'base-oss-nvidia-driver-ubuntu-22.04',
    'Deep Learning Base OSS Nvidia Driver AMI (Ubuntu 22.04)',
  ),
  {
    name: 'Deep Learning AMI Neuron (Ubuntu 24.04) 20261101',
    description: 'Ubuntu with the driver and the frameworks of AWS Neuron',
    ownerAlias: 'amazon',
    rootDevice: '/dev/sda1',
    rootGiB: 100,
    parameter: '/aws/service/neuron/dlami/multi-framework/ubuntu-24.04/latest/image_id',
  },
  {
    name: 'al2023-ami-2023.9.20261101.0-kernel-6.12-x86_64',
    description: 'Amazon Linux 2023 AMI x86_64 HVM kernel-6.12',
    ownerAlias: 'amazon',
    rootDevice: '/dev/xvda',
    rootGiB: 8,
    parameter: '/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-x86_64',
  },
]

function deepLearning(kind: string, name: string): ImagePlan {
  return {
    name: `${name} 20261101`,
    description: `${name}, with drivers, Docker and the SSM agent`,
    ownerAlias: 'amazon',
    rootDevice: '/dev/sda1',
    rootGiB: 65,
    parameter: `/aws/service/deeplearning/ami/x86_64/${kind}/latest/ami-id`,
  }
}

function imagesOf(world: World, region: string): Image[] {
  const usual = IMAGES.map(({ parameter, ...image }) => ({
    ...image,
    id: lastingId('ami', `${region}/${image.name}`),
    architecture: 'x86_64' as const,
    parameters: [parameter],
    isDeprecated: world.deprecatedImages.includes(parameter),
  }))
  const own = Object.entries(world.parameters)
    .filter(([, id]) => /^ami-[0-9a-f]+$/.test(id))
    .map(([parameter, id]) => ({
      id,
      name: parameter.split('/').at(-1)!,
      description: `Image of the parameter ${parameter}`,
      ownerAlias: 'self',
      architecture: 'x86_64' as const,
      rootDevice: '/dev/sda1',
      rootGiB: 8,
      parameters: [parameter],
      isDeprecated: world.deprecatedImages.includes(parameter),
    }))
  return [...usual, ...own]
}

/** Points a public parameter to another image, which is created as a copy of the previous one if it does not exist. */
export function publish(
  world: World,
  region: Region,
  { name, image: id }: { name: string; image: string },
): void {
  const before = region.images.find(({ parameters }) => parameters.includes(name))
  if (before === undefined) throw new Error(`no image of ${region.plan.name} has the parameter ${name}`)
  before.parameters = before.parameters.filter((each) => each !== name)
  if (name in world.parameters) world.parameters[name] = id
  const there = region.images.find((each) => each.id === id)
  if (there !== undefined) there.parameters.push(name)
  else
    region.images.push({
      ...before,
      id,
      name: `${before.name} ${id}`,
      parameters: [name],
      isDeprecated: false,
    })
}

/** Returns all public parameters of a region. */
export function parametersOf(world: World, region: Region): Map<string, string> {
  const images = region.images.flatMap(({ id, parameters }) => parameters.map((name) => [name, id] as const))
  return new Map([...images, ...Object.entries(world.parameters)])
}
