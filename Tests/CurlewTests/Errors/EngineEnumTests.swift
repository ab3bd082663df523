// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewEngine
import Testing

@testable import Curlew

/// The enums of the engine that have the cases of a public enum.
@Suite struct EngineEnumTests {
    /// Requires that each type has a case for every case of the other one, with the same name.
    private func expectSameCases<One, Other>(
        _ one: One.Type, _ other: Other.Type, _ location: SourceLocation = #_sourceLocation
    )
    where
        One: RawRepresentable & CaseIterable & Equatable, Other: RawRepresentable & CaseIterable & Equatable,
        One.RawValue == Other.RawValue, One.RawValue: Hashable
    {
        let values = one.allCases.map(\.rawValue)
        guard values == other.allCases.map(\.rawValue), Set(values).count == values.count else {
            Issue.record("\(values) is not \(other.allCases.map(\.rawValue))", sourceLocation: location)
            return
        }
        for (one, other) in zip(one.allCases, other.allCases) {
            #expect(One(sameAs: other) == one && Other(sameAs: one) == other, sourceLocation: location)
            #expect("\(one)" == "\(other)", sourceLocation: location)
        }
    }

    @Test func enumsOfTheEngineHaveTheCasesOfThePublicEnums() {
        expectSameCases(Lifecycle.State.self, Transfer<Void>.State.self)
        expectSameCases(LinkState.Kind.self, PathMonitor.Path.Kind.self)
        expectSameCases(EngineConfiguration.Version.self, Session.Configuration.HTTP.Version.self)
        expectSameCases(EngineConfiguration.AddressOrder.self, Session.Configuration.TCP.AddressOrder.self)
        expectSameCases(EngineConfiguration.TLS.Version.self, Session.Configuration.TLS.Version.self)
    }

    @Test func enginePhasesAreTheFirstPublicPhases() {
        let phases = EngineFailure.Phase.allCases
        #expect(phases.map(\.rawValue) == Array(phases.indices))
        #expect(phases.map { "\(NetworkError.Phase($0))" } == phases.map { "\($0)" })
        #expect(NetworkError.Phase.allCases.dropFirst(phases.count) == [.validating, .decoding, .saving])
    }
}
