import { join } from 'node:path'

/** The services of a Temporal server and what each listens for; the names are those of its own configuration. */
const TEMPORAL_PORTS = [
  'FRONTEND_GRPC_PORT',
  'FRONTEND_HTTP_PORT',
  'FRONTEND_MEMBERSHIP_PORT',
  'INTERNAL_FRONTEND_GRPC_PORT',
  'INTERNAL_FRONTEND_HTTP_PORT',
  'INTERNAL_FRONTEND_MEMBERSHIP_PORT',
  'MATCHING_GRPC_PORT',
  'MATCHING_MEMBERSHIP_PORT',
  'HISTORY_GRPC_PORT',
  'HISTORY_MEMBERSHIP_PORT',
  'WORKER_GRPC_PORT',
  'WORKER_MEMBERSHIP_PORT',
]

export async function temporalPorts(freePort: () => Promise<number>): Promise<Record<string, string>> {
  const ports: Record<string, string> = {}
  for (const name of TEMPORAL_PORTS) ports[name] = String(await freePort())
  return ports
}

/** What Crucible's services find in their environment, at a pace for tests. */
export function settingsOf(at: {
  folder: string
  store: number
  temporal: Record<string, string>
}): Record<string, string> {
  const credentials = join(at.folder, 'secrets', 'aws_credentials')
  const home = join(at.folder, 'crucible')
  return {
    TEMPORAL_ADDRESS: `127.0.0.1:${at.temporal['FRONTEND_GRPC_PORT']!}`,
    TEMPORAL_NAMESPACE: 'default',
    CRUCIBLE_HOME: home,
    CRUCIBLE_SECRET_KEY_FILE: join(home, 'secret.key'),
    CRUCIBLE_STORE: `s3://crucible?endpoint=http://127.0.0.1:${at.store}`,
    CRUCIBLE_BACKENDS: 'local',
    CRUCIBLE_LOCAL_SLOTS: '4',
    CRUCIBLE_OWNER: 'team',
    AWS_REGION: 'us-east-1',
    AWS_SHARED_CREDENTIALS_FILE: credentials,
    AWS_EC2_METADATA_DISABLED: 'true',
    CRUCIBLE_GRANT_CREDENTIALS_FILE: credentials,
    AWS_CONFIG_FILE: '/dev/null',
    CRUCIBLE_BEAT: '1s',
    CRUCIBLE_OBSERVE: '0.5s',
    CRUCIBLE_DRAIN: '5s',
    CRUCIBLE_POWER_OFF: '1s',
    CRUCIBLE_CHECKPOINT_QUIET: '0.5s',
    CRUCIBLE_GONE_CONFIRM: '1s',
    PATH: process.env['PATH'] ?? '',
    HOME: at.folder,
    AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: '1',
    NO_PROXY: '127.0.0.1',
    no_proxy: '127.0.0.1',
  }
}
