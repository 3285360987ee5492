/** The launch of the API, with its checks in their order. */
import { z } from 'zod'
import { route, type HttpRoute } from '../http/service'
import { hasRegion, typeNamed, type LambdaAccount } from './account'
import { invalidParameters, lambdaError, noSuch } from './errors'
import type { LambdaInstance } from './model'

/** The API's limit on user data. */
const USER_DATA_BYTES_MAX = 1024 ** 2

const launchRequest = z.strictObject({
  region_name: z.string(),
  instance_type_name: z.string(),
  ssh_key_names: z.array(z.string()),
  file_system_names: z.array(z.string()).default([]),
  file_system_mounts: z
    .array(
      z.strictObject({
        mount_point: z
          .string()
          .max(256)
          .regex(/^(\/home|\/lambda\/nfs|\/data)[/a-zA-Z0-9-]*$/),
        file_system_id: z.string(),
      }),
    )
    .default([]),
  hostname: z
    .string()
    .max(63)
    .regex(/^[a-z0-9][0-9a-z-]{0,62}$/)
    .optional(),
  name: z.string().max(64).default(''),
  image: z.union([z.strictObject({ id: z.string() }), z.strictObject({ family: z.string() })]).optional(),
  user_data: z.string().default(''),
  tags: z
    .array(
      z.strictObject({
        key: z
          .string()
          .max(55)
          .regex(/^[a-z][a-z0-9-:]+$/),
        value: z.string().max(128),
      }),
    )
    .default([]),
  firewall_rulesets: z.array(z.strictObject({ id: z.string() })).default([]),
})
type LaunchRequest = z.output<typeof launchRequest>

export function launchRoute(account: LambdaAccount): HttpRoute {
  return route('launch', 'POST /api/v1/instance-operations/launch', {
    body: launchRequest,
    isMutating: true,
    run: ({ body }) => ({ data: { instance_ids: [launch(account, body).id] } }),
  })
}

function launch(account: LambdaAccount, wish: LaunchRequest): LambdaInstance {
  const { region_name: region, ssh_key_names: keys, user_data: userData } = wish
  const { account: state, quota } = account.plan
  if (state === 'invalid-address')
    throw lambdaError('global/invalid-address', 'Your billing address is invalid.')
  if (!hasRegion(region)) throw invalidParameters(`region_name: there is no region ${region}`)
  if (keys.length !== 1) throw invalidParameters('ssh_key_names: name exactly one SSH key')
  if (Buffer.byteLength(userData) > USER_DATA_BYTES_MAX)
    throw invalidParameters('user_data: is larger than 1 MB')
  const type = typeNamed(wish.instance_type_name)
  if (type === undefined) throw noSuch('instance type')
  if (!account.sshKeys.some(({ name }) => name === keys[0])) throw noSuch('SSH key')
  const mounts = mountsOf(account, wish)
  if (account.taken() >= quota) throw lambdaError('global/quota-exceeded', 'Quota exceeded.')
  if (!account.hasRoom(type, region))
    throw lambdaError(
      'instance-operations/launch/insufficient-capacity',
      'Not enough capacity to fulfill launch request.',
    )
  return account.launch({
    name: wish.name,
    hostname: wish.hostname,
    region,
    type,
    sshKey: keys[0]!,
    mounts,
    userData,
    tags: new Map(wish.tags.map(({ key, value }) => [key, value])),
  })
}

function mountsOf(account: LambdaAccount, wish: LaunchRequest): LambdaInstance['mounts'] {
  const named = wish.file_system_names.map((name) => {
    const found = account.fileSystems.find((each) => each.name === name)
    if (found === undefined) throw noSuch('file system')
    return { mount_point: `/lambda/nfs/${name}`, file_system_id: found.id }
  })
  const mounts = [...named, ...wish.file_system_mounts]
  for (const { file_system_id: id } of mounts) {
    const found = account.fileSystems.find((each) => each.id === id)
    if (found === undefined) throw noSuch('file system')
    if (found.region !== wish.region_name)
      throw lambdaError(
        'instance-operations/launch/file-system-in-wrong-region',
        `The file system ${found.name} is in ${found.region}.`,
      )
  }
  return mounts
}
