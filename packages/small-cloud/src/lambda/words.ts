/** Writes records as the API shows them. */
import { stateAt } from '../machines/history'
import type { FileSystem, LambdaInstance, LambdaStatus } from './model'
import { LAMBDA_REGIONS, type LambdaType } from './types'

export function regionWords(name: string): { name: string; description: string } {
  return { name, description: LAMBDA_REGIONS[name] ?? name }
}

export function typeWords(type: LambdaType, centsPerHour: number): object {
  const { name, gpu, gpus, vcpus, memoryGiB, storageGiB } = type
  return {
    name,
    description: `${gpus}x ${gpu}`,
    gpu_description: gpu,
    price_cents_per_hour: centsPerHour,
    specs: { vcpus, memory_gib: memoryGiB, storage_gib: storageGiB, gpus },
  }
}

/** @param atMs the instant whose state is shown */
export function instanceWords(
  instance: LambdaInstance,
  { atMs, cents }: { atMs: number; cents: number },
): Record<string, unknown> & { status: LambdaStatus } {
  const { id, name, hostname, region, type, sshKey, mounts, tags, ip, privateIp } = instance
  const status = stateAt(instance, atMs).state
  return {
    id,
    ...(name === '' ? {} : { name }),
    ...(status === 'booting' ? {} : { ip, private_ip: privateIp }),
    status,
    ssh_key_names: [sshKey],
    file_system_names: mounts.map(({ mount_point: path }) => path.split('/').at(-1)!),
    ...(mounts.length === 0 ? {} : { file_system_mounts: mounts }),
    region: regionWords(region),
    instance_type: typeWords(type, cents),
    hostname,
    ...(status === 'active'
      ? { jupyter_token: id.slice(0, 16), jupyter_url: `https://jupyter.invalid/${id.slice(0, 16)}` }
      : {}),
    actions: actionsOf(status),
    tags: [...tags].map(([key, value]) => ({ key, value })),
  }
}

function actionsOf(status: LambdaStatus): object {
  const available = { available: true }
  const blocked = (reason_code: string): object => ({
    available: false,
    reason_code,
    reason_description: reason_code,
  })
  const isOver = status !== 'booting' && status !== 'active' && status !== 'unhealthy'
  const whenUp = isOver
    ? blocked('vm-is-terminating')
    : status === 'booting'
      ? blocked('vm-has-not-launched')
      : available
  const never = blocked('vm-is-too-old')
  return {
    migrate: never,
    rebuild: never,
    restart: whenUp,
    cold_reboot: whenUp,
    terminate: isOver ? blocked('vm-is-terminating') : available,
  }
}

const USER = { id: '0'.repeat(32), email: 'owner@example.com', status: 'active' }

export function fileSystemWords({ id, name, region, createdAtMs }: FileSystem, isInUse: boolean): object {
  return {
    id,
    name,
    mount_point: `/lambda/nfs/${name}`,
    created: new Date(createdAtMs).toISOString(),
    created_by: USER,
    is_in_use: isInUse,
    region: regionWords(region),
    bytes_used: 0,
  }
}
