/**
 * The answers of Lambda's API as published: names, types and required fields of its OpenAPI 1.10.0 (docs.lambda.ai/api/cloud/spec.json, copy
 * of 2026-08-03, compared on 2026-11-24 with version 2.4.1 of the client that is generated from it). Only the parts that this cloud serves.
 */
import { z } from 'zod'

const region = z.strictObject({ name: z.string(), description: z.string() })
const instanceType = z.strictObject({
  name: z.string(),
  description: z.string(),
  gpu_description: z.string(),
  price_cents_per_hour: z.int(),
  specs: z.strictObject({ vcpus: z.int(), memory_gib: z.int(), storage_gib: z.int(), gpus: z.int() }),
})
const availability = z.strictObject({
  available: z.boolean(),
  reason_code: z.string().optional(),
  reason_description: z.string().optional(),
})
const tag = z.strictObject({ key: z.string(), value: z.string() })
const mount = z.strictObject({ mount_point: z.string(), file_system_id: z.string() })

const INSTANCE = z.strictObject({
  id: z.string(),
  name: z.string().max(64).optional(),
  ip: z.string().optional(),
  private_ip: z.string().optional(),
  status: z.enum(['booting', 'active', 'unhealthy', 'terminated', 'terminating', 'preempted']),
  ssh_key_names: z.array(z.string()),
  file_system_names: z.array(z.string()),
  file_system_mounts: z.array(mount).optional(),
  region,
  instance_type: instanceType,
  hostname: z.string().optional(),
  jupyter_token: z.string().optional(),
  jupyter_url: z.string().optional(),
  actions: z.strictObject({
    migrate: availability,
    rebuild: availability,
    restart: availability,
    cold_reboot: availability,
    terminate: availability,
  }),
  tags: z.array(tag).optional(),
  firewall_rulesets: z.array(z.strictObject({ id: z.string() })).optional(),
})
const sshKey = z.strictObject({
  id: z.string(),
  name: z.string().min(1).max(64),
  public_key: z.string().min(1).max(4096),
})
const fileSystem = z.strictObject({
  id: z.string(),
  name: z.string(),
  mount_point: z.string(),
  created: z.iso.datetime(),
  created_by: z.strictObject({
    id: z.string(),
    email: z.string(),
    status: z.enum(['active', 'deactivated']),
  }),
  is_in_use: z.boolean(),
  region,
  bytes_used: z.int().optional(),
})
const image = z.strictObject({
  id: z.string(),
  created_time: z.iso.datetime(),
  updated_time: z.iso.datetime(),
  name: z.string(),
  description: z.string(),
  family: z.string(),
  version: z.string(),
  architecture: z.enum(['x86_64', 'arm64']),
  region,
})
const data = <T extends z.ZodType>(schema: T) => z.strictObject({ data: schema })

/** By method and path, the answer with status 200. */
export const PUBLISHED: Readonly<Record<string, z.ZodType>> = {
  'GET /instance-types': data(
    z.record(
      z.string(),
      z.strictObject({ instance_type: instanceType, regions_with_capacity_available: z.array(region) }),
    ),
  ),
  'GET /instances': data(z.array(INSTANCE)),
  'GET /instances/{id}': data(INSTANCE),
  'POST /instances/{id}': data(INSTANCE),
  'POST /instance-operations/launch': data(z.strictObject({ instance_ids: z.array(z.string()) })),
  'POST /instance-operations/terminate': data(z.strictObject({ terminated_instances: z.array(INSTANCE) })),
  'POST /instance-operations/restart': data(z.strictObject({ restarted_instances: z.array(INSTANCE) })),
  'GET /ssh-keys': data(z.array(sshKey)),
  'POST /ssh-keys': data(z.union([sshKey, sshKey.extend({ private_key: z.string() })])),
  'DELETE /ssh-keys/{id}': data(z.strictObject({})),
  'GET /file-systems': data(z.array(fileSystem)),
  'POST /filesystems': data(fileSystem),
  'DELETE /filesystems/{id}': data(z.strictObject({ deleted_ids: z.array(z.string()) })),
  'GET /images': data(z.array(image)),
  'GET /regions': data(z.array(region)),
}

/** The documented codes by status; codes that begin with `provider/` may come with any. */
export const PUBLISHED_ERRORS: Readonly<Record<string, readonly number[]>> = {
  'global/account-inactive': [403],
  'global/conflict': [409],
  'global/duplicate': [400],
  'global/forbidden': [403],
  'global/internal-error': [500],
  'global/invalid-address': [403],
  'global/invalid-api-key': [401],
  'global/invalid-parameters': [400],
  'global/not-found': [404],
  'global/object-does-not-exist': [400, 404],
  'global/quota-exceeded': [400],
  'filesystems/filesystem-in-use': [400],
  'instance-operations/launch/file-system-in-wrong-region': [400],
  'instance-operations/launch/insufficient-capacity': [400],
}

export const PUBLISHED_ERROR = z.strictObject({
  error: z.strictObject({
    code: z.string(),
    message: z.string(),
    suggestion: z.string().optional(),
    request_id: z.string().optional(),
  }),
})
