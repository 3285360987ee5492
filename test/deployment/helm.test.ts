/** The Helm chart, judged by `helm` where it is installed. */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { parse, parseAllDocuments } from 'yaml'

const CHART = join(__dirname, '../../deploy/helm/crucible')
const REQUIRED = [
  'temporal.address=temporal.example:7233',
  'store=s3://bucket/prefix',
  'key.existingSecret=crucible-key',
]

interface Container {
  args?: string[]
  env?: { name: string; value: string }[]
  securityContext: object
  resources: object
}
interface Resource {
  kind: string
  metadata: { name: string }
  spec: {
    replicas?: number
    template: { spec: { containers: Container[]; initContainers: Container[] } }
    triggers: { metadata: object }[]
  }
}

function helm(
  verb: string,
  values: readonly string[],
  ...more: string[]
): { status: number | null; text: string } {
  const set = values.flatMap((value) => ['--set', value])
  const { status, stdout, stderr } = spawnSync('helm', [verb, ...more, CHART, ...set], { encoding: 'utf8' })
  return { status, text: `${stdout}${stderr}` }
}

function rendered(...values: string[]): Resource[] {
  const { status, text } = helm('template', [...REQUIRED, ...values], 'team')
  expect([status, text]).toEqual([0, expect.any(String)])
  return parseAllDocuments(text).map((document) => document.toJS() as Resource)
}

const namesOf = (resources: Resource[], kind: string): string[] =>
  resources.filter((each) => each.kind === kind).map(({ metadata }) => metadata.name)

const hasHelm = spawnSync('helm', ['version']).status === 0
const withHelm = hasHelm ? it : it.skip

describe('the Helm chart', () => {
  it('is of the version of the product', () => {
    const read = (path: string): string => readFileSync(join(CHART, path), 'utf8')
    const { version } = JSON.parse(read('../../../package.json')) as { version: string }
    expect(parse(read('Chart.yaml'))).toMatchObject({ version, appVersion: version })
  })

  withHelm('is clean, and has one Deployment for each role with its own budget of disruptions', () => {
    expect(helm('lint', REQUIRED, '--strict').status).toBe(0)
    const resources = rendered('workers.modal.replicas=2', 'settings.AWS_REGION=eu-west-1')
    const names = ['team-ec2', 'team-modal', 'team-orchestrator']
    expect(namesOf(resources, 'Deployment')).toEqual(names)
    expect(namesOf(resources, 'PodDisruptionBudget')).toEqual(names)
    for (const { spec } of resources.filter(({ kind }) => kind === 'Deployment')) {
      const [worker] = spec.template.spec.containers
      expect(worker!.env).toEqual(
        expect.arrayContaining([
          { name: 'CRUCIBLE_BACKENDS', value: 'ec2,modal' },
          { name: 'CRUCIBLE_METRICS', value: '0.0.0.0:9464' },
          { name: 'AWS_REGION', value: 'eu-west-1' },
        ]),
      )
      for (const { securityContext } of [worker!, ...spec.template.spec.initContainers])
        expect(securityContext).toEqual({
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        })
    }
  })

  withHelm('leaves out a role that is null', () => {
    expect(namesOf(rendered('workers.ec2=null', 'workers.lambda.replicas=1'), 'Deployment')).toEqual([
      'team-lambda',
      'team-orchestrator',
    ])
  })

  withHelm('scales a role by the backlog of its queue, from one pod on', () => {
    const resources = rendered(
      'keda.enabled=true',
      'keda.roles.ec2.min=1,keda.roles.ec2.max=3,keda.roles.ec2.tasksPerPod=9',
    )
    const [ec2, orchestrator] = resources.filter(({ kind }) => kind === 'ScaledObject')
    expect(ec2!.spec.triggers[0]!.metadata).toMatchObject({
      taskQueue: 'crucible.ec2',
      queueTypes: 'activity',
    })
    expect(orchestrator!.spec).toMatchObject({ minReplicaCount: 1, maxReplicaCount: 4 })
    const scaled = resources.filter(({ kind }) => kind === 'Deployment').map(({ spec }) => spec.replicas)
    expect(scaled).toEqual([undefined, undefined])
  })

  withHelm.each([
    [['temporal.address='], 'temporal.address is missing'],
    [['store='], 'store is missing'],
    [['key.existingSecret='], 'key.existingSecret is missing'],
    [['temporal.address=http://there:7233'], 'temporal'],
    [['workers.local.replicas=1'], 'workers.local'],
    [['image.digset=sha256:0'], 'digset'],
    [['keda.roles.orchestrator.min=0'], 'min'],
  ])('refuses values with a name: %s', (values, named) => {
    const { status, text } = helm('template', [...REQUIRED, ...values], 'team')
    expect(status).not.toBe(0)
    expect(text).toContain(named)
  })
})
