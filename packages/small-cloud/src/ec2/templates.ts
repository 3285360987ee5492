/** Launch templates and their immutable versions. */
import { z } from 'zod'
import { dryRun, filter, flag, list, paging, tagSpecification, text } from '../wire/query'
import { ApiError } from '../wire/errors'
import { action, type Action, type Call } from '../wire/service'
import type { Ec2 } from './ec2'
import { byId, page, select } from './filters'
import { launchData, tagsFor, type TemplateSpecification } from './launch-fields'
import type { LaunchFields, Region, Template, TemplateVersion } from './model'
import { tagWords } from './tags'
import { templateDataWords } from './template-words'

const named = { LaunchTemplateId: text.optional(), LaunchTemplateName: text.optional() }
const NAME = /^[a-zA-Z0-9().\-/_]{3,128}$/

export function templateActions(ec2: Ec2): Record<string, Action> {
  return {
    CreateLaunchTemplate: createTemplate(ec2),
    CreateLaunchTemplateVersion: createVersion(ec2),
    DeleteLaunchTemplate: deleteTemplate(ec2),
    ...tellingActions(ec2),
  }
}

function createTemplate(ec2: Ec2): Action {
  return action({
    input: z.strictObject({
      ...dryRun,
      LaunchTemplateName: text.regex(NAME, 'must be 3 to 128 letters, digits or ().-/_'),
      LaunchTemplateData: launchData,
      VersionDescription: text.optional(),
      ClientToken: text.optional(),
      TagSpecification: list(tagSpecification).optional(),
    }),
    isMutating: true,
    run({ ClientToken: token, ...parameters }, call) {
      const region = ec2.region(call.region)
      const template = ec2.tokens.once(`CreateLaunchTemplate/${call.region}`, { token, parameters }, () => {
        const {
          LaunchTemplateName: name,
          VersionDescription: description,
          LaunchTemplateData: data,
        } = parameters
        if ([...region.templates.values()].some((each) => each.name === name))
          throw new ApiError(
            'InvalidLaunchTemplateName.AlreadyExistsException',
            'Launch template name already in use.',
          )
        const made: Template = {
          id: ec2.parts.ids.resource('lt'),
          name,
          createdAtMs: ec2.nowMs,
          createdBy: call.principal.arn,
          visibleAtMs: ec2.nowMs + ec2.drawMs('objectHidden'),
          tags: tagsFor('launch-template', parameters),
          versions: [makeVersion(ec2, call, { number: 1, description, data })],
        }
        region.templates.set(made.id, made)
        return made
      })
      return { launchTemplate: templateWords(template) }
    },
  })
}

function createVersion(ec2: Ec2): Action {
  return action({
    input: z.strictObject({
      ...dryRun,
      ...named,
      LaunchTemplateData: launchData,
      SourceVersion: text.optional(),
      VersionDescription: text.optional(),
      ClientToken: text.optional(),
    }),
    isMutating: true,
    run({ ClientToken: token, ...parameters }, call) {
      const template = findTemplate(ec2, call, parameters)
      const version = ec2.tokens.once(
        `CreateLaunchTemplateVersion/${call.region}`,
        { token, parameters },
        () => {
          const {
            SourceVersion: source,
            VersionDescription: description,
            LaunchTemplateData: data,
          } = parameters
          const base = source === undefined ? {} : versionOf(template, source).data
          const number = template.versions.at(-1)!.number + 1
          const made = makeVersion(ec2, call, { number, description, data: { ...base, ...data } })
          template.versions.push(made)
          return made
        },
      )
      return { launchTemplateVersion: versionWords(ec2, template, version) }
    },
  })
}

function deleteTemplate(ec2: Ec2): Action {
  return action({
    input: z.strictObject({ ...dryRun, ...named }),
    isMutating: true,
    run(wish, call) {
      const template = findTemplate(ec2, call, wish)
      ec2.region(call.region).templates.delete(template.id)
      return { launchTemplate: templateWords(template) }
    },
  })
}

function tellingActions(ec2: Ec2): Record<string, Action> {
  return {
    DescribeLaunchTemplates: action({
      input: z.strictObject({
        ...dryRun,
        ...paging,
        Filter: list(filter).default([]),
        LaunchTemplateId: list(text).default([]),
        LaunchTemplateName: list(text).default([]),
      }),
      run({ Filter, LaunchTemplateId: ids, LaunchTemplateName: names, ...wish }, { region }) {
        const shown = visible(ec2, ec2.region(region))
        const byIds = byId(ids, (id) => shown.find((each) => each.id === id), {
          code: 'InvalidLaunchTemplateId.NotFound',
          what: 'launch template ID',
        })
        const byNames = byId(names, (name) => shown.find((each) => each.name === name), {
          code: 'InvalidLaunchTemplateName.NotFoundException',
          what: 'launch template name',
        })
        const wanted = ids.length + names.length === 0 ? shown : [...byIds, ...byNames]
        const found = select(wanted, Filter, {
          'launch-template-name': ({ name }) => name,
          'create-time': ({ createdAtMs }) => new Date(createdAtMs).toISOString(),
        })
        const { items, nextToken } = page(found, wish, { least: 1, most: 200 })
        return { launchTemplates: items.map(templateWords), nextToken }
      },
    }),
    DescribeLaunchTemplateVersions: action({
      input: z.strictObject({
        ...dryRun,
        ...paging,
        ...named,
        LaunchTemplateVersion: list(text).default([]),
        MinVersion: text.optional(),
        MaxVersion: text.optional(),
        ResolveAlias: flag.optional(),
      }),
      run(
        { LaunchTemplateVersion: numbers, MinVersion: from, MaxVersion: until, ResolveAlias: _, ...wish },
        call,
      ) {
        const template = findTemplate(ec2, call, wish)
        const wanted =
          numbers.length === 0
            ? [...template.versions].reverse()
            : numbers.map((number) => versionOf(template, number))
        const inside = wanted.filter(
          ({ number }) => number >= Number(from ?? 1) && number <= Number(until ?? Infinity),
        )
        const { items, nextToken } = page(inside, wish, { least: 1, most: 200 })
        return {
          launchTemplateVersionSet: items.map((version) => versionWords(ec2, template, version)),
          nextToken,
        }
      },
    }),
  }
}

function visible(ec2: Ec2, { templates }: Region): Template[] {
  return [...templates.values()].filter(({ visibleAtMs }) => visibleAtMs <= ec2.nowMs)
}

interface Named {
  LaunchTemplateId?: string | undefined
  LaunchTemplateName?: string | undefined
}

function findTemplate(
  ec2: Ec2,
  { region }: Call,
  { LaunchTemplateId: id, LaunchTemplateName: name }: Named,
): Template {
  if (id === undefined && name === undefined)
    throw new ApiError(
      'MissingParameter',
      'The request must contain either LaunchTemplateId or LaunchTemplateName',
    )
  if (id !== undefined && name !== undefined)
    throw new ApiError(
      'InvalidParameterCombination',
      'Only one of LaunchTemplateId and LaunchTemplateName may be given',
    )
  const template = visible(ec2, ec2.region(region)).find((each) =>
    id === undefined ? each.name === name : each.id === id,
  )
  if (template !== undefined) return template
  if (id !== undefined)
    throw new ApiError(
      'InvalidLaunchTemplateId.NotFound',
      `The specified launch template, with template ID ${id}, does not exist.`,
    )
  throw new ApiError(
    'InvalidLaunchTemplateName.NotFoundException',
    `The specified launch template, with template name ${name}, does not exist.`,
  )
}

function versionOf(template: Template, wanted: string): TemplateVersion {
  const number =
    wanted === '$Latest' ? template.versions.at(-1)!.number : wanted === '$Default' ? 1 : Number(wanted)
  const version = template.versions.find((each) => each.number === number)
  if (version === undefined)
    throw new ApiError(
      'InvalidLaunchTemplateId.VersionNotFound',
      `Could not find the specified version ${wanted} for the launch template with ID ${template.id}.`,
    )
  return version
}

/** Returns the version that a launch names, otherwise the default one. */
export function findVersion(
  ec2: Ec2,
  call: Call,
  { Version = '$Default', ...names }: TemplateSpecification,
): TemplateVersion & { templateId: string; templateName: string } {
  const template = findTemplate(ec2, call, names)
  return { ...versionOf(template, Version), templateId: template.id, templateName: template.name }
}

function makeVersion(
  ec2: Ec2,
  { principal }: Call,
  { number, description, data }: { number: number; description: string | undefined; data: LaunchFields },
): TemplateVersion {
  return {
    number,
    ...(description === undefined ? {} : { description }),
    createdAtMs: ec2.nowMs,
    createdBy: principal.arn,
    data,
  }
}

function templateWords({ id, name, createdAtMs, createdBy, versions, tags }: Template) {
  return {
    launchTemplateId: id,
    launchTemplateName: name,
    createTime: new Date(createdAtMs),
    createdBy,
    defaultVersionNumber: 1,
    latestVersionNumber: versions.at(-1)!.number,
    tagSet: tagWords(tags),
  }
}

function versionWords(ec2: Ec2, { id, name }: Template, version: TemplateVersion) {
  return {
    launchTemplateId: id,
    launchTemplateName: name,
    versionNumber: version.number,
    versionDescription: version.description,
    createTime: new Date(version.createdAtMs),
    createdBy: version.createdBy,
    defaultVersion: version.number === 1,
    launchTemplateData: templateDataWords(version.data),
  }
}
